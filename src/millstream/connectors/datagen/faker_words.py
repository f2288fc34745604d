"""Words of faker expressions that the package Faker does not have: products, animals, and characters of fiction.

Promises: each list is short; a value is drawn from it with equal chances.
Does not know: expressions."""

from __future__ import annotations

_HARRY_POTTER_CHARACTERS = (
    *("Harry Potter", "Hermione Granger", "Ron Weasley", "Luna Lovegood", "Neville Longbottom", "Rubeus Hagrid"),
    *("Minerva McGonagall", "Severus Snape", "Albus Dumbledore", "Ginny Weasley", "Sirius Black", "Remus Lupin"),
)
_HARRY_POTTER_SPELLS = (
    *("Accio", "Alohomora", "Expelliarmus", "Expecto Patronum", "Lumos", "Nox", "Riddikulus", "Stupefy"),
    *("Wingardium Leviosa", "Protego", "Reparo", "Obliviate"),
)
WORDS: dict[str, tuple[str, ...]] = {
    "animal.name": ("badger", "crane", "dolphin", "fox", "hare", "heron", "lynx", "otter", "owl", "seal", "wolf"),
    "app.name": ("Bluebird", "Cartwheel", "Daybook", "Footpath", "Ledger", "Noteboard", "Pinwheel", "Quickstep"),
    "beer.style": ("Amber Ale", "Bock", "Dubbel", "India Pale Ale", "Pilsner", "Porter", "Saison", "Stout"),
    "commerce.department": (
        *("Automotive", "Baby", "Beauty", "Books", "Clothing", "Electronics", "Garden", "Grocery", "Health", "Home"),
        *("Jewelry", "Music", "Outdoors", "Shoes", "Sports", "Tools", "Toys"),
    ),
    "commerce.material": ("Bronze", "Concrete", "Cotton", "Granite", "Leather", "Linen", "Paper", "Steel", "Wool"),
    "drwho.character": ("Amy Pond", "Clara Oswald", "Donna Noble", "Martha Jones", "Rose Tyler", "River Song"),
    "drwho.thedoctors": tuple(
        f"{number} Doctor"
        for number in ("First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth")
    ),
    "food.dish": ("Burrito", "Curry", "Lasagne", "Paella", "Pho", "Pizza", "Ramen", "Risotto", "Stew", "Tacos"),
    "food.fruit": ("Apple", "Banana", "Cherry", "Fig", "Grape", "Kiwi", "Lemon", "Mango", "Orange", "Pear", "Plum"),
    "food.ingredient": ("Barley", "Basil", "Butter", "Flour", "Garlic", "Ginger", "Honey", "Onion", "Rice", "Salt"),
    "food.vegetable": ("Beetroot", "Broccoli", "Carrot", "Leek", "Onion", "Pea", "Potato", "Pumpkin", "Spinach"),
    "harrypotter.book": ("The Philosopher's Stone", "The Chamber of Secrets", "The Goblet of Fire"),
    "harrypotter.character": _HARRY_POTTER_CHARACTERS,
    "harrypotter.characters": _HARRY_POTTER_CHARACTERS,
    "harrypotter.house": ("Gryffindor", "Hufflepuff", "Ravenclaw", "Slytherin"),
    "harrypotter.location": (
        "Diagon Alley",
        "Godric's Hollow",
        "Hogsmeade",
        "Hogwarts",
        "Platform 9 3/4",
        "The Burrow",
    ),
    "harrypotter.spell": _HARRY_POTTER_SPELLS,
    "harrypotter.spells": _HARRY_POTTER_SPELLS,
    "hitchhikersguidetothegalaxy.character": ("Arthur Dent", "Ford Prefect", "Marvin", "Trillian", "Zaphod Beeblebrox"),
    "hitchhikersguidetothegalaxy.location": ("Earth", "Islington", "Magrathea", "Milliways", "Viltvodle VI"),
    "hitchhikersguidetothegalaxy.planet": ("Betelgeuse V", "Damogran", "Earth", "Krikkit", "Magrathea", "Vogsphere"),
    "hitchhikersguidetothegalaxy.starship": (
        "Heart of Gold",
        "Bistromath",
        "Starship Titanic",
        "Vogon Constructor Ship",
    ),
    "music.genre": ("Ambient", "Blues", "Classical", "Country", "Folk", "Funk", "Hip Hop", "Jazz", "Reggae", "Rock"),
    "music.instrument": ("Accordion", "Cello", "Clarinet", "Drums", "Flute", "Guitar", "Harp", "Piano", "Violin"),
    "rickandmorty.character": ("Rick Sanchez", "Morty Smith", "Summer Smith", "Birdperson", "Squanchy", "Mr. Meeseeks"),
    "rickandmorty.location": ("Anatomy Park", "Citadel of Ricks", "Dimension C-137", "Gazorpazorp", "Planet Squanch"),
    "space.galaxy": ("Andromeda", "Cartwheel Galaxy", "Milky Way", "Pinwheel Galaxy", "Sombrero Galaxy"),
    "space.nasaspacecraft": ("Atlantis", "Challenger", "Columbia", "Discovery", "Endeavour", "Enterprise", "Orion"),
    "space.planet": ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"),
    "space.star": ("Aldebaran", "Antares", "Betelgeuse", "Polaris", "Proxima Centauri", "Rigel", "Sirius", "Vega"),
    "superhero.name": ("Captain Comet", "Doctor Quartz", "Iron Falcon", "Lady Ember", "Night Heron", "The Green Gale"),
    "superhero.power": ("flight", "invisibility", "night vision", "super speed", "super strength", "telepathy"),
    "weather.description": ("clear", "cloudy", "drizzle", "fog", "rain", "snow", "sunny", "thunderstorm"),
}
PRODUCTS = (
    ("Durable", "Ergonomic", "Fantastic", "Gorgeous", "Handy", "Practical", "Sleek", "Small"),
    ("Bench", "Chair", "Clock", "Coat", "Hat", "Keyboard", "Knife", "Lamp", "Shirt", "Table", "Watch"),
)
